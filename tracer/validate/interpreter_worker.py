"""The process that runs kernels in Triton's interpreter: `python -m tracer.validate.interpreter_worker FD`.

TRITON_INTERPRET changes all of Triton for the life of a process, while capture and lowering need it unset;
so the interpreter has a process of its own. It imports no torch. A request is one line of JSON over the
socket FD, together with the descriptor of the shared memory; so is the answer, without a descriptor.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import sys
import time
import traceback
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tracer.validate.interpreter_memory import Memory

_modules: dict[tuple[str, int, int], types.ModuleType] = {}
_current: Memory | None = None


def memory() -> Memory:
    """The memory of the current launch."""
    assert _current is not None
    return _current


def load(path: str) -> types.ModuleType:
    """The module of a triton_kernel.py, again only when the file changed."""
    state = Path(path).stat()
    key = (path, state.st_mtime_ns, state.st_size)
    if key not in _modules:
        spec = importlib.util.spec_from_file_location(f"tracer_kernel_{len(_modules)}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _modules[key] = module
    return _modules[key]


def launch(kernel: Any, arguments: dict[str, Any], constexpr: dict[str, Any], grid: list[int]) -> None:
    """Run the kernel's programs one after the other. A pointer is `[byte offset, "*fp16"]`."""
    import triton.language as tl
    import triton.runtime.interpreter as stock

    from tracer.validate.interpreter_patches import patch_once

    function = kernel.rewrite()
    x, y, z = (*grid, 1, 1, 1)[:3]
    with patch_once.launch():
        values: dict[str, Any] = {}
        for name, value in arguments.items():
            if isinstance(value, list):
                offset, spelling = value
                type_ = tl.str_to_ty(spelling, None)
                address = np.array([memory().base + offset], dtype=np.uint64)
                values[name] = tl.tensor(stock.TensorHandle(address, type_), type_)
            else:
                values[name] = stock._implicit_cvt(value)
        values |= constexpr
        stock.interpreter_builder.set_grid_dim(x, y, z)
        for i in range(x):
            for j in range(y):
                for k in range(z):
                    stock.interpreter_builder.set_grid_idx(i, j, k)
                    function(**values)


def serve(request: dict[str, Any], descriptor: int) -> dict[str, Any]:
    """Run every launch of a request; the answer says how long it took, or what went wrong at which kernel."""
    global _current
    start = time.perf_counter()
    _current = Memory(descriptor, request["size"])
    os.close(descriptor)
    name = ""
    try:
        _current.register([(start, length) for start, length in request["buffers"]])
        module = load(request["path"])
        for part in request["launches"]:
            name = part["kernel"]
            launch(getattr(module, name), part["args"], part["constexpr"], part["grid"])
    except Exception as error:
        return {"kernel": name, "error": _one_line(error), "trace": traceback.format_exc()}
    finally:
        _current.close()
        _current = None
    return {"seconds": time.perf_counter() - start}


def _one_line(error: BaseException) -> str:
    # The interpreter wraps the error of a helper function in one of its own.
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]


def main(argv: list[str]) -> int:
    """Answer requests until the client closes its end."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        print("TRITON_INTERPRET=1 is needed", file=sys.stderr)
        return 4
    # Ctrl-C reaches the whole process group; the client ends its worker, and says what there is to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Casts of values that a where() drops, and -inf - -inf in masked lanes, are no news.
    warnings.filterwarnings("ignore", category=RuntimeWarning)
    np.seterr(all="ignore")
    from tracer.validate.interpreter_patches import install

    install(memory, fast="--stock" not in argv)
    channel = socket.socket(fileno=int(argv[1]))
    answers = channel.makefile("wb")
    while True:
        head, descriptors, _, _ = socket.recv_fds(channel, 8, 1)
        if len(head) < 8:
            return 0
        length = int.from_bytes(head, "little")
        body = b""
        while len(body) < length:
            body += channel.recv(min(1 << 20, length - len(body)))
        answer = serve(json.loads(body), descriptors[0])
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
