"""llama.cpp's server, as `llama-server` is, out of the package xllamacpp, which brings it as a library.

    python llama_server.py MODEL.gguf --host HOST --port PORT --parallel N

Each flag has the name that it has of llama-server (docs/how-to/servers-llamacpp.md)."""

from __future__ import annotations

import argparse
import os
import signal

import xllamacpp


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--parallel", type=int, default=32)
    parser.add_argument("--ctx-size", type=int, default=2048, help="of all slots together")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--threads-http", type=int, help="a connection has one as long as it is open")
    parser.add_argument("--half-cache", action="store_true", help="float16 in the cache and flash attention, its defaults")
    options = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.hostnames = [options.host]
    params.port = options.port
    params.n_parallel = options.parallel
    params.n_ctx = options.ctx_size
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.threads
    params.n_threads_http = options.threads_http or options.parallel + 16
    params.endpoint_metrics = True
    params.warmup = False
    if not options.half_cache:  # it is 1e-3 off
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.cache_type_k = xllamacpp.ggml_type.GGML_TYPE_F32
        params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    server = xllamacpp.Server(params)
    print("listening on", server.listening_address.rsplit(":", 1)[-1], "as", os.getpid(), flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
