"""Goes before a program: imports PyTorch, or says that there is none, and serves."""
import ctypes
import json
import sys

try:
    import torch
except ImportError as e:
    print(json.dumps({"missing": str(e)}), flush=True)
    sys.exit()


def blas():
    """The libraries of linear algebra that are loaded, with how OpenBLAS's builds
    use threads: 0 not at all, 1 their own, 2 OpenMP's; none is -1. A PyTorch that
    has MKL within multiplies with no other, whoever else has loaded one."""
    if torch.backends.mkl.is_available():
        return []
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "blas" in line.rsplit("/", 1)[-1]}
    def parallel(path):
        try:
            return ctypes.CDLL(path).openblas_get_parallel()
        except (OSError, AttributeError):
            return -1
    return [{"path": p, "parallel": parallel(p)} for p in sorted(paths)]


def serve(answer):
    """Says what this is, then answers requests, a line each."""
    print(json.dumps({"about": "PyTorch " + torch.__version__, "blas": blas()}), flush=True)
    for line in sys.stdin.buffer:
        try:
            reply = answer(line.decode().rstrip("\n"))
        except Exception as e:
            reply = {"failed": "%s: %s" % (type(e).__name__, e)}
        print(json.dumps(reply), flush=True)


