"""The program that renders `task.template: chat`, beside transformers, on what published templates use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from temper import chat_template

pytestmark = pytest.mark.needs("tokenizers", "transformers")

#: Each has the constructs of the templates of a model family, in a shorter text.
TEMPLATES = {
    "chatml": "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are helpful.<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "llama 3": "{{- bos_token }}\n{%- if custom_tools is defined %}\n    {%- set tools = custom_tools %}\n{%- endif %}\n"
    "{%- if not date_string is defined %}\n    {%- set date_string = '26 Jul 2024' %}\n{%- endif %}\n"
    "{%- if tools is not none %}{{- 'tools' }}{%- endif %}\n{{- 'Today: ' + date_string + '\n\n' }}\n"
    "{%- for message in messages %}\n"
    "    {{- '<|start|>' + message['role'] + '<|end|>\n\n'+ message['content'] | trim + '<|eot|>' }}\n"
    "{%- endfor %}\n{%- if add_generation_prompt %}\n    {{- '<|start|>assistant<|end|>\n\n' }}\n{%- endif %}\n",
    "mistral": "{%- if messages[0]['role'] == 'system' %}{%- set system = messages[0]['content'] %}"
    "{%- set rest = messages[1:] %}{%- else %}{%- set rest = messages %}{%- endif %}{{ bos_token }}"
    "{% for m in rest %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}{% if m['role'] == 'user' %}"
    "{% if loop.last and system is defined %}[INST] {{ system + '\n\n' + m['content'] }}[/INST]{% else %}"
    "[INST] {{ m['content'] }}[/INST]{% endif %}{% else %} {{ m['content'] }}{{ eos_token }}{% endif %}{% endfor %}",
    "qwen 3": "{%- set ns = namespace(last=messages|length - 1, seen=false) %}\n"
    "{%- for message in messages[::-1] %}\n    {%- set index = (messages|length - 1) - loop.index0 %}\n"
    "    {%- if not ns.seen and message.role == 'user' and message.content is string and "
    "not (message.content.startswith('<tool>') and message.content.endswith('</tool>')) %}\n"
    "        {%- set ns.seen = true %}\n        {%- set ns.last = index %}\n    {%- endif %}\n{%- endfor %}\n"
    "{%- for message in messages %}\n    {%- if loop.index0 < ns.last and '</think>' in message.content %}\n"
    "        {{- message.content.split('</think>')[-1].lstrip('\n') }}\n    {%- else %}\n"
    "        {{- '<|' ~ message.role ~ '|>' ~ message.content.strip() }}\n    {%- endif %}\n{%- endfor %}\n"
    "{%- if enable_thinking is defined and enable_thinking is false %}<think></think>{%- endif %}{{ ns.last }}",
    "gemma": "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for message in messages %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}"
    "{% else %}{% set role = message['role'] %}{% endif %}"
    "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}",
    "json": "{{ messages | tojson }}{{ messages | tojson(indent=4) }}{{ {'b': 1, 'a': 'é<'} | tojson(sort_keys=true) }}",
    "blocks": "\n  {% for m in messages %}\n    {% if m.role == 'assistant' %}{% generation %}\n{{ m.content }}\n"
    "    {% endgeneration %}\n    {% continue %}{% endif %}\n  [{{ m.content | upper }}]\n  {# a comment #}\n{% endfor %}\n\n",
    "macros": "{% macro say(m, n=2) -%}\n  {{ m.content * n }}\n{%- endmacro %}{% for m in messages %}{{ say(m) }}"
    "{% set _ = m.role %}{{ _[:1] }}{% endfor %}{{ missing }}{{ messages | map(attribute='role') | join(',') }}",
    "items": "{% for m in messages %}{% for k, v in m.items() %}{{ k }}={{ v }};{% endfor %}{{ m.get('name', 'nobody') }}"
    "{% endfor %}{{ messages[0]['content'][0:3] }}{{ range(3) | list }}{{ messages | selectattr('role', 'equalto', 'user') | list | length }}",
}  # fmt: skip
CHATS = [
    [{"role": "user", "content": "What is 12 + 7?"}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " \u00fc\u20ac\U0001f600 <b>&\"'\n "}],
    [{"role": "user", "content": "a"}, {"role": "assistant", "content": "<think>x</think>\n\nb"},
     {"role": "user", "content": "c"}],
    [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
]  # fmt: skip


@pytest.fixture
def tokenizer(tmp_path):
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.BPE()), bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )


def rendered(folder: Path) -> list[dict]:
    program = subprocess.run(
        [sys.executable, chat_template.__file__, str(folder), "100000"],
        input="".join(json.dumps(chat) + "\n" for chat in CHATS).encode(), capture_output=True, check=True)
    lines = [json.loads(line) for line in program.stdout.splitlines()]
    assert lines[0] == {"ready": True}
    return lines[1:]


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("jinja_file", [True, False])
def test_texts_and_refusals_are_those_of_transformers(name, jinja_file, tokenizer, tmp_path):
    tokenizer.chat_template = TEMPLATES[name]
    tokenizer.save_pretrained(tmp_path, save_jinja_files=jinja_file)
    assert (tmp_path / "chat_template.jinja").exists() == jinja_file
    answers = rendered(tmp_path)
    assert len(answers) == len(CHATS)
    for chat, answer in zip(CHATS, answers):
        try:
            text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        except Exception as error:
            assert answer["error"].endswith(str(error)), (answer, error)
        else:
            assert answer == {"text": text}
