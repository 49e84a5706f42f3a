#!/usr/bin/env python3
"""Lists public declarations of headers whose comment leaves out a part of their contract.

    docs/contracts.py [FOLDER ...]      default: core actors orchestrator rollout trainer
    docs/contracts.py --count           only the number of each kind, and the share of comment lines, by folder

A declaration is listed for

    errors      it returns a Result or a Status, and neither its comment nor that of the file says which error
    units       it has a floating-point number, and neither a name nor a comment says in what
    ownership   it takes or returns a raw pointer, and no comment says whether it may be null or how long it lives

A comment holds for the declarations below it up to the next blank line or comment. What a comment cannot
show by a word (a precondition that is missing) is not looked for.
"""
import argparse
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("core", "actors", "orchestrator", "rollout", "trainer")
ERRORS = re.compile(r"\b[Ee]rrors?\b|\b[Ff]ails?\b|\brefuse|\breject|ErrorCode|Requires")
UNITS = re.compile(r"seconds?|_s\b|per_s|/s\b|bytes?|tokens?|share|ratio|fraction|percent|probabilit|log|reward|rate|scale|norm|"
                   r"factor|mean|weight|advantage|loss|score|chance|beta|epsilon|temperature|top_p|bound|value|number|quantile|"
                   r"devices|FLOP|flops|cards|accuracy|margin|crowding|clip|decay|kl|correlation|deviation|tolerance|step", re.I)
OWNERSHIP = re.compile(r"\bnull|\bown|outlive|\blives?\b|valid (until|as long)|nullopt|borrow|Requires", re.I)


def scope_of(opening, outer):
    """Whether the braces behind `opening` hold public declarations: not those of a body or a value."""
    if re.match(r"(inline )?namespace\b|extern \"C\"", opening):
        return outer
    if re.match(r"(template ?<.*> ?)?(class|struct|union)\b(?!.*\)$)", opening) and "=" not in re.sub(r"<.*>", "", opening):
        return outer and not re.match(r"(template ?<.*> ?)?class\b", opening)
    return False


def code_of(line):
    """The line without literals and comments, whose braces and semicolons end nothing."""
    return re.sub(r"//.*", "", re.sub(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)+\'', '""', line))


def declarations(text):
    """(line, declaration, comment) of each public function of a header; what a body holds is none."""
    comment, block, begin, seen = [], "", 0, ""
    scopes, opening = [(True, True)], ""  # (this scope is public, the scope around it is)
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if re.match(r"(private|protected|public):$", bare):
            scopes[-1] = (scopes[-1][1] and bare == "public:", scopes[-1][1])
            block, opening = "", ""
            continue
        if bare.startswith("//"):
            if block == "" and comment and not comment[-1][0]:
                comment = []
            comment.append((True, bare.lstrip("/ ")))
            continue
        if not bare or bare.startswith("#"):
            comment, block = [] if not bare else comment, ""
            continue
        code, _, behind = line.partition("///<")
        public = scopes[-1][0]
        if not block:
            begin, seen = number, public
        block += " " + code.split("// ")[0].strip()
        said = " ".join(words for _, words in comment) + " " + behind
        for character in code_of(line):
            if character == "{":
                holds = scope_of(" ".join(opening.split()), scopes[-1][0])
                around = scopes[-1][0] if re.match(r"\s*(template|class|struct|union|namespace|inline namespace|extern)", opening) else False
                scopes.append((holds, around))
                opening = ""
            elif character == "}":
                if len(scopes) > 1:
                    scopes.pop()
                opening = ""
            elif character == ";":
                opening = ""
            else:
                opening += character
        opening += " "
        if re.search(r"[;{}]\s*$", code):
            if seen and "(" in block and not re.match(r"\s*(namespace|using|static_assert|extern template|TEMPER_)", block):
                yield begin, block.strip(), said
            if comment:
                comment[-1] = (False, comment[-1][1])
            block = ""


def missing(declaration, said, header_comment):
    signature = declaration.split("{")[0]
    if re.search(r"\b(operator|override|friend|= default|= delete)\b", signature):
        return
    name = re.search(r"([A-Za-z_]\w*)\s*\(", signature)
    if not name:
        return
    returned = signature[:name.start()]
    if re.search(r"\b(Result<|Status\b)", returned) and not ERRORS.search(said + header_comment):
        yield "errors"
    if re.search(r"\b(double|float)\b", signature) and not UNITS.search(signature.replace("double", "").replace("float", "") + said + header_comment):
        yield "units"
    if re.search(r"\w\s*\*\s*(\w|\()", signature) and "char*" not in signature and "void*" not in signature and \
            not OWNERSHIP.search(said + header_comment):
        yield "ownership"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    parser.add_argument("--count", action="store_true")
    options = parser.parse_args()
    counts, all_of = collections.Counter(), collections.Counter()
    lines, comments = collections.Counter(), collections.Counter()
    for folder in options.folders:
        for path in sorted((ROOT / folder).rglob("*.hpp")):
            text = path.read_text()
            written = [line.strip() for line in text.splitlines() if line.strip()]
            lines[folder] += len(written)
            comments[folder] += sum(line.startswith("//") for line in written)
            header_comment = " ".join(re.match(r"(?://[^\n]*\n)*", text)[0].split())
            for line, declaration, said in declarations(text):
                all_of[folder] += 1
                for kind in missing(declaration, said, header_comment):
                    counts[folder, kind] += 1
                    if not options.count:
                        print(f"{path.relative_to(ROOT)}:{line}: {kind}: {' '.join(declaration.split())[:90]}")
    for folder in options.folders:
        kinds = ", ".join(f"{kind} {counts[folder, kind]}" for kind in ("errors", "units", "ownership"))
        print(f"{folder}: {all_of[folder]} declarations; without {kinds}; "
              f"comments are {100 * comments[folder] / max(1, lines[folder]):.0f} % of the lines of headers", file=sys.stderr)


if __name__ == "__main__":
    main()
