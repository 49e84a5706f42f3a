"""The credentials of a worker."""

from __future__ import annotations

import pathlib

import pytest

import temper
from temper import credentials

FILE = """secret: 0123abcd
orchestrator_key: "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
own:
  open: "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
  secret: "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"
"""


def test_a_file_is_read(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rollout-0"
    file.write_text(FILE)
    file.chmod(0o600)
    read = credentials.given(str(file))
    assert read.secret == "0123abcd"
    assert read.orchestrator_key == "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
    assert read.own_open.startswith("Yne@") and read.own_secret.endswith("cs")


def test_a_file_that_others_can_read_is_refused(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "rollout-0"
    file.write_text(FILE)
    file.chmod(0o640)
    with pytest.raises(temper.RoleError, match="expected a file of this user with mode 0600, found mode 0640"):
        credentials.read(file)


def test_the_environment_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPER_SECRET", "abc")
    assert credentials.given() == credentials.Credentials("abc")
