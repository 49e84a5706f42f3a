#!/usr/bin/env python3
"""Writes docs/reports/language.md: messages and paragraphs, before and after, chosen at random.

    docs/language.py [--seed N] [--count N]

Twenty messages (string literals and `.doc` texts of C++ sources, and help texts) and twenty paragraphs
of documentation are drawn from commit BEFORE with a fixed seed. The text of today that is most similar
stands beside each: in the file that has its place now, or anywhere in the sources.
"""
import argparse
import difflib
import pathlib
import random
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reports/language.md"
BEFORE = "4db5874"


def git(*words):
    return subprocess.run(["git", "-C", str(ROOT), *words], text=True, capture_output=True, check=True).stdout


def literals(text):
    """Messages of a C++ source: string literals of at least five words, those of neighboring lines joined."""
    text = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    found = []
    for match in re.finditer(r'"(?:[^"\\\n]|\\.)*"(?:\s+"(?:[^"\\\n]|\\.)*")*', text):
        words = re.sub(r'"\s+"', "", match[0])[1:-1].replace('\\"', '"').replace("\\n", " ")
        if len(re.findall(r"\b[A-Za-z]{2,}\b", words)) >= 5 and len(words.split()) >= 5 and not words.startswith(("#", "{\\", "|")):
            found.append(" ".join(words.split()))
    return found


def paragraphs(text):
    """Paragraphs of prose of a page, without tables, code and headings."""
    text = re.sub(r"<!--.*?-->|```.*?```", "", text, flags=re.DOTALL)
    found = []
    for block in re.split(r"\n\s*\n|\n(?=- )", text):
        lines = [line for line in block.splitlines() if line.strip()]
        if lines and not re.match(r"[|#!]|    |_Measured", lines[0]) and len(block.split()) >= 15:
            found.append(" ".join(block.split()))
    return found


def words_of(text):
    return re.findall(r"[a-z0-9_.]+", re.sub(r"\]\([^)]*\)", "", text.lower()))


def nearest(text, candidates):
    """The most similar candidate and its similarity, 0 to 1."""
    mine = words_of(text)
    if not candidates:
        return "", 0.0
    rough = sorted(candidates, key=lambda c: -len(set(mine) & set(words_of(c))) / (1 + len(set(mine) | set(words_of(c)))))[:12]
    scored = [(difflib.SequenceMatcher(None, mine, words_of(c)).ratio(), c) for c in rough]
    ratio, best = max(scored)
    return best, ratio


def shown(text):
    return text.replace("|", "\\|").replace("](", "] (").replace("<", "&lt;")


def section(out, title, drawn, now):
    """Writes the drawn texts. `now` has (file, text) pairs; those of the same file are looked at first."""
    out.append(f"## {title}\n")
    everything = [text for _, text in now]
    for number, (where, before) in enumerate(drawn, 1):
        after, ratio = nearest(before, [text for name, text in now if name == where])
        if ratio < 0.4:
            elsewhere = nearest(before, everything)
            enough = 0.6 if len(words_of(before)) < 12 else ratio  # short texts resemble unrelated ones
            after, ratio = elsewhere if elsewhere[1] >= enough else (after, ratio)
        if after == before:
            after = "*(unchanged)*"
        elif ratio < 0.3:
            after = "*(removed, or too different to be found)*"
        out.append(f"**{number}.** `{where}`\n\n- before: {shown(before)}\n- after: {shown(after)}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--count", type=int, default=20)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    names = git("ls-tree", "-r", "--name-only", BEFORE).split()
    sources = [n for n in names if n.endswith((".cpp", ".hpp")) and not n.startswith(("tests/", "bench/"))]
    pages = [n for n in names if n == "README.md" or re.fullmatch(r"docs/[^/]+\.md", n)]
    pages = [n for n in pages if n not in ("docs/config.md", "docs/protocol.md", "docs/validation.md", "docs/metrics.md")]
    messages = [(n, m) for n in sources for m in literals(git("show", f"{BEFORE}:{n}"))]
    prose = [(n, p) for n in pages for p in paragraphs(git("show", f"{BEFORE}:{n}"))]
    today = git("ls-files").split()
    now_messages = [(n, m) for n in today if n.endswith((".cpp", ".hpp")) and not n.startswith(("tests/", "bench/"))
                    for m in literals((ROOT / n).read_text())]
    now_prose = [(n, p) for n in today if n.endswith(".md") and (n == "README.md" or n.startswith("docs/")) and n != "docs/reports/language.md"
                 for p in paragraphs((ROOT / n).read_text())]
    out = ["# Report: language, before and after\n",
           f"`docs/language.py --seed {options.seed}` draws {options.count} of {len(messages)} messages and {options.count} of "
           f"{len(prose)} paragraphs of commit {BEFORE} at random, and puts the most similar text of today beside each.\n"]
    section(out, "Messages", rng.sample(messages, options.count), now_messages)
    section(out, "Paragraphs", rng.sample(prose, options.count), now_prose)
    PAGE.write_text("\n".join(out))


if __name__ == "__main__":
    main()
