"""Templates of texts about a response: `{prompt}`, `{response}`, `{answer}`, and columns of its row."""

from __future__ import annotations

import json
import re

from .errors import RoleError
from .roles import Sample

_NAME = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def fill(template: str, sample: Sample, key: str) -> str:
    """Replaces names in braces. Other braces stay, so a template may contain JSON.

    Args:
        template: The template.
        sample: The response.
        key: Key of the template in the YAML, for errors.

    Returns:
        The text. Braces inside a replaced value are not replaced again.

    Raises:
        RoleError: The row has no column of a name.
    """
    own = {"prompt": sample.prompt, "response": sample.response, "answer": sample.answer}
    values = {**sample.columns, **own}

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in values:
            known = ", ".join(sorted(values))
            raise RoleError(f"{key}: {{{name}}} is no column of the row; expected one of {known}")
        found = values[name]
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)

    return _NAME.sub(value, template)
