"""Writes the configurations of model_families.json that come from `transformers`.

    python tests/integration/model_families.py

An entry of the file has `family`, `verdict`, `source` and `config`. If `source` names a class of `transformers`, this
program replaces `config` by what `save_pretrained` of that class writes, and `version` by that of the library. All other
sources are public repositories. To add a family, add an entry without `config`.
"""

from __future__ import annotations

import json
from pathlib import Path

FAMILIES = Path(__file__).with_suffix(".json")


def read() -> list[dict]:
    return json.loads(FAMILIES.read_text())


def written(source: dict) -> dict:
    """The config.json that `transformers` writes for the class of a source."""
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    config = getattr(transformers, source["class"])(**source.get("arguments", {}))
    architecture = source.get("architecture") or MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[config.model_type]
    config.architectures = [architecture]
    return json.loads(config.to_json_string())


def main() -> None:
    import transformers

    entries = read()
    for entry in entries:
        if "class" in entry["source"]:
            entry["source"]["version"] = transformers.__version__
            entry["config"] = written(entry["source"])
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    FAMILIES.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
