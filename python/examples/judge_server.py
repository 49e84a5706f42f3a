"""A judge to try `verifier.kind: judge` with, without a language model: an OpenAI-compatible server.

    python3 python/examples/judge_server.py --port 8199
    temper run configs/recipes/judge.yaml

It compares the lines `expected: X` and `given: Y` of a question, and replies with the share of the
characters that agree, from 0 to 10: `The score is 7`.
"""

from __future__ import annotations

import argparse
import http.server
import json
import re
from typing import Any


def score(question: str) -> int:
    """Ten times the share of equal characters; right answers alone have 10."""
    expected, given = (
        (re.findall(rf"^{word}: *(.*?) *$", question, re.MULTILINE) or [""])[-1]
        for word in ("expected", "given")
    )
    if expected == given:
        return 10
    same = sum(a == b for a, b in zip(expected, given))
    return min(9, 10 * same // max(len(expected), len(given), 1))


class JudgeServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)

    def reply(self, request: dict[str, Any], headers: Any) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the reply to a request."""
        question = request["messages"][-1]["content"]
        text = f"The score is {score(question)}"
        usage = {"prompt_tokens": len(question.split()), "completion_tokens": len(text.split())}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}}
        body = {"object": "chat.completion", "choices": [choice], "usage": usage}
        return 200, {}, json.dumps(body).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: JudgeServer

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, headers, body = self.server.reply(request, self.headers)
        self.send_response(status if self.path.endswith("/chat/completions") else 404)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8199)
    server = JudgeServer(parser.parse_args().port)
    print(f"judging at http://127.0.0.1:{server.server_port}/v1; Ctrl-C ends it", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
