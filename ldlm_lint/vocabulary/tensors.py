"""The results of torch's interfaces: the device of a call's result or an attribute.

Source: the pages of `torch` and `torch.Tensor` of PyTorch 2.13 (docs.pytorch.org/docs/stable), read in November 2026. The
methods and attributes of a tensor are those in ``torch/_C/__init__.pyi`` and ``torch/_tensor.py`` of torch 2.11; the
annotated results there tell those that give something of Python.
"""

from __future__ import annotations

from ldlm_lint.patterns import lazily

HOST_ATTRIBUTES = frozenset(
    "shape dtype device ndim is_cuda requires_grad layout names is_sparse itemsize nbytes is_leaf grad_fn grad_dtype is_cpu is_meta "
    "is_mkldnn is_mps is_mtia is_nested is_quantized is_sparse_csr is_vulkan is_xpu output_nr retains_grad".split()
)
"""Attributes of a tensor that Python has without a look at the device."""
BATCH_ATTRIBUTES = frozenset("num_graphs num_nodes num_edges num_features num_node_features num_edge_features num_node_types num_edge_types".split())
"""Numbers of Python that a batch of `torch_geometric` has beside its tensors (pyg-team.github.io, `torch_geometric.data.Data`, November 2026)."""
TENSOR_ATTRIBUTES = frozenset("T mT H mH data grad real imag values indices".split())
HOST_METHODS = frozenset(
    "size dim numel nelement element_size data_ptr is_contiguous stride get_device ndimension is_floating_point storage_offset "
    "untyped_storage backward register_hook has_names is_complex is_pinned is_inference is_conj is_neg is_signed is_same_size is_set_to "
    "is_shared is_coalesced is_distributed dense_dim sparse_dim dim_order storage_type storage qscheme q_per_channel_axis record_stream "
    "retain_grad register_post_accumulate_grad_hook".split()
)
"""Methods of a tensor that give something of Python without a look at the device."""
TENSOR_METHODS = frozenset(
    "abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr adjoint align_as align_to all allclose amax amin aminmax angle "
    "any apply_ arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort argwhere as_strided as_strided_scatter "
    "as_subclass asin asinh atan atan2 atanh backward baddbmm bernoulli bfloat16 bincount bitwise_and bitwise_left_shift bitwise_not "
    "bitwise_or bitwise_right_shift bitwise_xor bmm bool broadcast_to byte cauchy_ ccol_indices ceil chalf char cholesky cholesky_inverse "
    "cholesky_solve chunk clamp clamp_max clamp_min clip clone coalesce col_indices conj conj_physical contiguous copy_ copysign corrcoef "
    "cos cosh count_nonzero cov cpu cross crow_indices cuda cummax cummin cumprod cumsum data_ptr deg2rad dense_dim dequantize det detach "
    "diag diag_embed diagflat diagonal diagonal_scatter diff digamma dim dim_order dist div divide dot double dsplit eig element_size eq "
    "equal erf erfc erfinv exp exp2 expand expand_as expm1 exponential_ fill_ fill_diagonal_ fix flatten flip fliplr flipud float "
    "float_power floor floor_divide fmax fmin fmod frac frexp gather gcd ge geometric_ geqrf ger get_device greater greater_equal gt half "
    "hardshrink has_names hash_tensor heaviside histc histogram hsplit hypot i0 igamma igammac index index_add index_copy index_fill "
    "index_put index_reduce index_select indices inner int int_repr inverse is_coalesced is_complex is_conj is_contiguous is_distributed "
    "is_floating_point is_inference is_neg is_nonzero is_pinned is_same_size is_set_to is_shared is_signed isclose isfinite isinf isnan "
    "isneginf isposinf isreal istft item kron kthvalue lcm ldexp le lerp less less_equal lgamma log log10 log1p log2 log_normal_ "
    "log_softmax logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor logit logsumexp long lstsq lt lu "
    "lu_solve map2_ map_ masked_fill masked_scatter masked_select matmul matrix_exp matrix_power max maximum mean median min minimum mm "
    "mode module_load moveaxis movedim msort mul multinomial multiply mv mvlgamma nan_to_num nanmean nanmedian nanquantile nansum narrow "
    "narrow_copy ndimension ne neg negative nelement new new_empty new_empty_strided new_full new_ones new_tensor new_zeros nextafter "
    "nonzero nonzero_static norm normal_ not_equal numel numpy orgqr ormqr outer permute pin_memory pinverse polygamma positive pow prelu "
    "prod put q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qr qscheme quantile rad2deg random_ "
    "ravel reciprocal record_stream refine_names register_hook register_post_accumulate_grad_hook reinforce relu remainder rename renorm "
    "repeat repeat_interleave requires_grad_ reshape reshape_as resize resize_as resize_as_sparse_ resolve_conj resolve_neg retain_grad "
    "roll rot90 round row_indices rsqrt scatter scatter_add scatter_reduce select select_scatter set_ sgn share_memory_ short sigmoid "
    "sign signbit sin sinc sinh size slice_inverse slice_scatter slogdet smm softmax solve sort sparse_dim sparse_mask sparse_resize_ "
    "sparse_resize_and_clear_ split split_with_sizes sqrt square squeeze sspaddmm std stft storage storage_offset storage_type stride sub "
    "subtract sum sum_to_size svd swapaxes swapdims symeig t take take_along_dim tan tanh tensor_split tile to to_dense to_mkldnn "
    "to_padded_tensor to_sparse to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr tolist topk trace transpose "
    "triangular_solve tril triu true_divide trunc type type_as unbind unflatten unfold uniform_ unique unique_consecutive unsafe_chunk "
    "unsafe_split unsafe_split_with_sizes unsqueeze untyped_storage values var vdot view view_as vsplit where xlogy xpu zero_".split()
)
"""All methods of a tensor; of two that differ by a ``_`` at the end only the one without."""
TO_HOST = frozenset("item tolist numpy __float__ __int__ __bool__".split())
"""Methods of a tensor that copy values to the host and give something of Python."""
MODULE_METHODS = frozenset(
    "to cuda cpu train eval half float double bfloat16 requires_grad_ apply type to_empty share_memory compile".split()
)
"""Methods of `torch.nn.Module` that give the module itself."""
MODULE_USES = frozenset("train eval parameters named_parameters zero_grad load_state_dict named_modules".split())
"""Methods by which something whose creation is not seen is a `torch.nn.Module`: no tensor has one of them."""
BOOLEAN = frozenset(
    "isnan isinf isfinite eq ne gt lt ge le logical_and logical_or logical_not logical_xor any all isclose isin signbit isposinf "
    "isneginf greater less not_equal bool".split()
)
"""Functions and methods that give a tensor of booleans."""
KEEPS_BOOLEANS = frozenset(
    "view reshape flatten unflatten squeeze unsqueeze expand expand_as permute transpose movedim contiguous clone detach repeat cuda "
    "roll flip ravel view_as chunk split unbind narrow select index_select gather masked_fill to".split()
)
"""Methods of a tensor of booleans that give one again."""
ONE_PASS = (
    BOOLEAN
    | KEEPS_BOOLEANS
    | frozenset("mean sum max min amax amin argmax argmin std var norm abs neg float double half long int masked_select nonzero".split())
)
"""Functions and methods that read their tensors once, to reduce, compare, select or convert them: a small kernel beside
those of a model. What an operation costs is not in its signature, so the names stand here."""
JOINS = frozenset("cat concat concatenate stack hstack vstack dstack column_stack block_diag".split())
"""Functions of `torch` that make one tensor of those in a sequence."""
FACTORIES = frozenset(
    "zeros ones full empty rand randn randint arange linspace tensor as_tensor eye randperm logspace normal from_numpy range "
    "empty_strided tril_indices triu_indices LongTensor FloatTensor BoolTensor IntTensor ByteTensor DoubleTensor Tensor hann_window "
    "sparse_coo_tensor load".split()
)
"""Functions of `torch` that make a tensor: on the host where no ``device`` is given."""
ON_HOST = frozenset(
    "Size is_tensor seed initial_seed is_grad_enabled is_floating_point get_default_dtype manual_seed numel save is_autocast_enabled get_num_threads "
    "get_autocast_dtype equal allclose is_nonzero finfo iinfo Generator is_complex set_grad_enabled promote_types result_type".split()
)
"""Functions of `torch` that give something of Python."""
WAITING_METHODS = frozenset(
    "item tolist cpu nonzero unique masked_select equal is_nonzero to type get_scale where allclose unique_consecutive argwhere repeat_interleave".split()
)
"""Methods, and functions of `torch`, for whose result Python waits if the tensor is on the device."""
WRITERS_METHODS = frozenset({"add_scalar"})
"""Methods of TensorBoard's writer that read the number that they are given second, `scalar_value`, at once."""
WAITING_FUNCTIONS = frozenset("nonzero unique equal allclose masked_select is_nonzero unique_consecutive argwhere".split())
ALL_SIZES = slice(0, None)
SIZES_OF_FUNCTIONS: dict[str, slice] = {
    **dict.fromkeys("zeros ones empty rand randn randperm eye arange range".split(), ALL_SIZES),
    **dict.fromkeys("linspace logspace".split(), slice(2, 3)),
    **dict.fromkeys("full".split(), slice(0, 1)),
    "randint": slice(0, 3),
}
"""Functions of `torch` that make a tensor of a size, and which of their arguments are numbers that Python has to have."""
SIZES_OF_METHODS: dict[str, slice] = {
    **dict.fromkeys("view reshape expand repeat tile new_zeros new_ones new_empty unflatten".split(), ALL_SIZES),
    **dict.fromkeys("new_full chunk topk".split(), slice(0, 1)),
    "narrow": slice(1, 3),
}
"""Methods of a tensor whose result has a size that they are given."""
SIZE_KEYWORDS = frozenset("steps size k".split())
"""The keywords of these."""
PLAIN_METHODS = frozenset(
    "view reshape permute transpose float half double long int bool bfloat16 detach clone contiguous squeeze unsqueeze expand repeat "
    "sum mean max min abs pow exp log sqrt norm flatten item tolist numpy cpu cuda size dim numel backward masked_fill type_as "
    "expand_as softmax argmax clamp mul add div sub chunk split gather scatter eq ne gt lt ge le any all matmul requires_grad_ detach_ "
    "copy_ zero_ fill_ data_ptr view_as repeat_interleave index_select".split()
)
"""Methods that tensors have and hardly anything else."""
MADE_UP = frozenset(
    f"torch.{name}{like}" for name in ("zeros", "ones", "empty", "full", "rand", "randn", "randint") for like in ("", "_like")
)
"""Functions that make a tensor of no data: for a dry run, or to fill it later."""
DEVICES = frozenset("cuda xpu npu mps hpu".split())
"""How a text that names an accelerator begins."""
NOT_OF_ARRAYS = frozenset(
    "log exp sqrt abs pow norm softmax log_softmax sigmoid tanh relu float long double half bfloat16 int bool detach unsqueeze expand "
    "permute masked_fill gather topk neg square rsqrt amax amin lt gt le ge eq ne".split()
)
"""Methods of a tensor that neither an array of NumPy nor anything of Python has."""
LIBRARIES = frozenset(
    "torch einops xformers flash_attn torch_scatter kornia torchvision functorch torch_geometric apex torch_npu opt_einsum pytorch3d "
    "timm mmcv mmdet mmdet3d mmseg mmengine diffusers peft".split()
)
"""Packages whose functions keep what they are given where it is, and whose classes are modules."""
HOST_LIBRARIES = frozenset(
    "numpy np math os sys random time json re logging pathlib collections itertools functools datetime cv2 PIL scipy pandas matplotlib "
    "wandb pickle copy shutil argparse yaml sklearn warnings typing inspect string glob hashlib subprocess traceback gym gymnasium "
    "h5py pprint threading socket omegaconf tokenizers nltk".split()
)
"""Packages whose functions give something of Python."""
FRAMEWORKS = ("accelerate", "lightning", "pytorch_lightning", "deepspeed", "transformers")
"""Packages whose objects a training is handed, by a call or by an annotation."""
MODEL_WORDS = ("Module", "Model", "Head", "Base3DDetector", "Detector")
"""How the names of external base classes end that are modules of torch; their packages cannot be read."""
OTHER_ARRAYS = frozenset(
    "equinox flax haiku jax jittor keras megengine mindspore mlx oneflow paddle tensorflow".split()
)
"""Packages with modules and tensors of their own."""
HOST_BUILTINS = frozenset(
    "len int float str bool range isinstance issubclass hasattr callable id hash repr format type ord chr print open round bin hex "
    "input vars dir bytes ascii".split()
)
"""Builtin functions that give something of Python."""
LEARNS_NOTHING = lazily(
    r"^([A-Z]{1,2}[a-z]?|[bchwtnd])\d?$"
    r"|(?i:(^|_)(masks?|ids?|idx|index|indices|lens?|lengths?|pos|positions?|shapes?|size|num|dim|(time)?steps?|height|width|hw|heads?|scale|seed|mode|flag)\d?$)"
)
"""How inputs are called that require no gradient in any model: masks, indices and sizes, ``H`` and ``w`` among them; where
only a parameter of a model's ``forward`` is known, nothing but its name is."""


def is_method_of_tensor(name: str) -> bool:
    """Whether a tensor has a method of this name."""
    return name.startswith("_") or name in TENSOR_METHODS or name.removesuffix("_") in TENSOR_METHODS or name in DEVICES
