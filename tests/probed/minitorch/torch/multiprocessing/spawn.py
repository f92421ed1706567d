def _wrap(function, index, arguments, error_file):
    function(index, *arguments)
