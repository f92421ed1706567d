"""Captions from image latents with a masked diffusion language model."""
