"""A language model as a judge, against a server that can fail."""

from __future__ import annotations

import collections
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from judge_server import JudgeServer

import temper
from temper import messages as m
from temper.errors import BrokenReward, RoleError
from temper.fill import fill
from temper.judge import Judge, score_reader

Reply = tuple[int, dict[str, str], bytes]


def says(text: str) -> Reply:
    body = {"choices": [{"message": {"content": text}}]}
    return 200, {}, json.dumps(body).encode()


def refuses(status: int, message: str = "", **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, named, json.dumps({"error": {"message": message}}).encode()


class Faulty(JudgeServer):
    """Answers with the given replies, in order, and then as JudgeServer does."""

    def __init__(self) -> None:
        super().__init__()
        self.replies: collections.deque[Reply | Callable[[], Reply]] = collections.deque()
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []

    def reply(self, request: dict[str, Any], headers: Any) -> Reply:
        self.requests.append(request)
        self.keys.append(headers["Authorization"])
        if not self.replies:
            return super().reply(request, headers)
        given = self.replies.popleft()
        return given() if callable(given) else given


@pytest.fixture
def server() -> Iterator[Faulty]:
    with Faulty() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def judge(server: Faulty, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Judge]]:
    monkeypatch.setattr("temper.judge._FIRST_PAUSE", 0.001)
    made: list[Judge] = []

    def make(concurrency: int = 4, deadline: float = 20.0, **keys: Any) -> Judge:
        config = m.JudgeConfig(
            url=f"http://127.0.0.1:{server.server_port}/v1",
            model="a-model",
            prompt="{prompt}\nexpected: {answer}\ngiven: {response}",
            pattern=r"score is (\d+)",
            highest=10,
        )
        for name, value in keys.items():
            setattr(config, name, value)
        made.append(Judge(config, concurrency, deadline))
        return made[-1]

    yield make
    for each in made:
        each.close()


def samples(*texts: str, **columns: Any) -> list[temper.Sample]:
    return [temper.Sample("3+4=", "7", t, np.array([2], np.int32), columns) for t in texts]


def test_scores_become_rewards_from_0_to_1_in_order(server: Faulty, judge: Any) -> None:
    assert judge().judge(samples("7", "8", "71", "7")) == [1.0, 0.0, 0.5, 1.0]
    assert server.requests[0]["messages"] == [
        {"role": "user", "content": server.requests[0]["messages"][0]["content"]}
    ]
    assert {r["model"] for r in server.requests} == {"a-model"}
    assert {r["temperature"] for r in server.requests} == {0.0}


def test_a_request_has_only_the_limits_that_are_set(server: Faulty, judge: Any) -> None:
    judge().judge(samples("7"))
    extra = '{"max_completion_tokens": 9, "chat_template_kwargs": {"enable_thinking": false}}'
    judge(temperature=None, max_tokens=None, extra_body=extra).judge(samples("7"))
    plain, reasoning = ({k: v for k, v in r.items() if k != "messages"} for r in server.requests)
    assert plain == {"model": "a-model", "temperature": 0.0, "max_tokens": 1024}
    assert reasoning == {
        "model": "a-model",
        "max_completion_tokens": 9,
        "chat_template_kwargs": {"enable_thinking": False},
    }


def test_equal_questions_are_asked_once(server: Faulty, judge: Any) -> None:
    j = judge()
    j.judge(samples("7", "7", "8"))
    j.judge(samples("7", "8", "9"))
    assert len(server.requests) == 3
    usage = j.take_usage()
    assert (usage.requests, usage.cached, usage.retries) == (3, 3, 0)


def test_the_cache_forgets_the_oldest_score(server: Faulty, judge: Any) -> None:
    j = judge(cache=1)
    for text in ("7", "8", "8", "7"):
        j.judge(samples(text))
    assert len(server.requests) == 3


def test_tokens_and_cost_are_counted_until_taken(judge: Any) -> None:
    j = judge(input_price=10.0, output_price=100.0)
    j.judge(samples("7"))
    usage = j.take_usage()
    assert (usage.input_tokens, usage.output_tokens) == (5, 4)
    assert usage.cost == pytest.approx((5 * 10 + 4 * 100) / 1e6)
    assert j.take_usage() is None


@pytest.mark.parametrize(
    "reply",
    [
        refuses(429, "slow down", Retry_After="0"),
        refuses(500, "oops"),
        refuses(503),
        says("I cannot say."),
        says("The score is 11"),
        (200, {}, b"<html>"),
        (200, {}, b"[]"),
        (200, {}, b'{"choices": []}'),
        (200, {"Content-Length": "1000", "Connection": "close"}, b"cut off"),
    ],
)
def test_a_passing_failure_is_asked_again(server: Faulty, judge: Any, reply: Reply) -> None:
    server.replies += [reply, reply]
    j = judge()
    assert j.judge(samples("7")) == [1.0]
    usage = j.take_usage()
    assert (usage.requests, usage.retries) == (3, 2)


def test_attempts_are_bounded_and_the_error_has_the_last_reason(server: Faulty, judge: Any) -> None:
    j = judge(attempts=2)
    assert j.judge(samples("7")) == [1.0]
    server.replies += [refuses(500, "first"), refuses(503, "second")]
    (failed,) = j.judge(samples("8"))
    assert 'HTTP 503: "second" (2 requests in' in str(failed)
    assert f"http://127.0.0.1:{server.server_port}/v1" in str(failed)
    assert j.judge(samples("8")) == [0.0], "a failure is not kept"


def test_it_does_not_wait_beyond_the_deadline(server: Faulty, judge: Any) -> None:
    j = judge(deadline=5.0)
    assert j.judge(samples("7")) == [1.0]
    server.replies.append(refuses(429, "quota", Retry_After="60"))
    (failed,) = j.judge(samples("8"))
    assert 'HTTP 429: "quota" (1 request in 0.' in str(failed)


def test_a_server_that_hangs_costs_one_deadline(server: Faulty, judge: Any) -> None:
    j = judge(deadline=0.5)
    assert j.judge(samples("7")) == [1.0]
    free = threading.Event()
    server.replies.append(lambda: (free.wait(30) and says("")) or says(""))
    verdicts = j.judge(samples("8", "9"))
    free.set()
    hung = [v for v in verdicts if isinstance(v, Exception)]
    assert len(hung) == 1
    assert "no reply before the deadline (1 request in 0." in str(hung[0])


def test_a_permanent_failure_is_not_asked_again(server: Faulty, judge: Any) -> None:
    j = judge()
    assert j.judge(samples("7")) == [1.0]
    server.replies.append(refuses(401, "bad key"))
    (failed,) = j.judge(samples("8"))
    assert 'HTTP 401: "bad key"' in str(failed)
    assert len(server.requests) == 2


def test_one_that_never_gave_a_score_is_given_up_at_its_third_failure(
    server: Faulty, judge: Any
) -> None:
    server.replies += [refuses(404, "no model a-model")] * 3
    with pytest.raises(BrokenReward, match="no model a-model"):
        judge(concurrency=1).judge(samples("1", "2", "3", "4", "5"))
    with pytest.raises(BrokenReward, match="Connection"):
        judge(url="http://127.0.0.1:1/v1", attempts=1).judge(samples("1", "2", "3"))


def test_the_key_is_sent_and_never_shown(
    server: Faulty, judge: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RoleError, match="variable THE_KEY is not set"):
        judge(key_variable="THE_KEY")
    monkeypatch.setenv("THE_KEY", "sk-very-secret")
    j = judge(key_variable="THE_KEY")
    assert j.judge(samples("7")) == [1.0]
    assert server.keys == ["Bearer sk-very-secret"]
    server.replies.append(refuses(403, "key sk-very-secret is blocked"))
    assert "key *** is blocked" in str(j.judge(samples("8"))[0])


def test_columns_of_the_row_fill_the_question(server: Faulty, judge: Any) -> None:
    j = judge(prompt='{rubric} {"a": 1} {tags}\nexpected: {answer}\ngiven: {response}')
    assert j.judge(samples("7", rubric="Be {answer}.", tags=["x"])) == [1.0]
    asked = server.requests[0]["messages"][0]["content"]
    assert asked == 'Be {answer}. {"a": 1} ["x"]\nexpected: 7\ngiven: 7'
    with pytest.raises(RoleError, match=r"judge.prompt: \{rubic\} is no column of the row"):
        fill("{rubic}", samples("7", rubric="")[0], "judge.prompt")


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        ('{"score": 5}', 0.5),
        ('I think {this} is ```json\n{"why": {"score": 1}, "score": 10}\n``` right', 1.0),
        ('{"score": 2} No: {"score": "7"}', 0.7),
        ('{"score": true}', 0.1),
    ],
)
def test_a_field_is_read_from_the_last_object_of_the_reply(text: str, reward: float) -> None:
    read = score_reader(m.JudgeConfig(field="score", highest=10))
    assert read(text) == pytest.approx(reward)


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '{"points": 1}', '{"score": null}', '{"score": "x"}']
)
def test_a_reply_without_the_field_has_no_score(text: str) -> None:
    with pytest.raises(Exception, match="score"):
        score_reader(m.JudgeConfig(field="score", highest=10))(text)


def test_the_last_match_of_a_pattern_counts() -> None:
    read = score_reader(m.JudgeConfig(pattern=r"\d", highest=10))
    assert read("not 3, but 4") == 0.4
