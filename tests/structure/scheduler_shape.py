#!/usr/bin/env python3
"""The shape of the scheduler and of what surrounds it, measured on the sources.

  1. Every class outside tests is defined in at most 2 .cpp files.
  2. The scheduler, its parts, the structs that hold their state, and the drivers have at most 15
     data members.
  3. At most MOST_INCLUDING .cpp files outside tests include the scheduler's configuration, directly
     or not, and at most MOST_BESIDE the scheduler itself: drivers and views see its state.

Exceptions are listed below with a reason; one that is not needed any more fails the check too.

  scheduler_shape.py [ROOT]            check; exit status 1 if a rule is broken
  scheduler_shape.py [ROOT] --carriers also print which headers bring the configuration in, with the
                                       files that each one reaches and that would lose it without it
"""
import argparse
import collections
import pathlib
import re
import sys

FOLDERS = "core sim_hw actors rollout trainer orchestrator study cli bench".split()
SCHEDULER = "orchestrator/scheduler/scheduler.hpp"
CONFIG = "orchestrator/scheduler/state/config.hpp"

MOST_FILES = 2
MOST_MEMBERS = 15
MOST_INCLUDING = 100
# scheduler.cpp, the run core, replay, and two benchmarks.
MOST_BESIDE = 5

# Class -> why it is defined in more files.
MORE_FILES = {}
# Class -> why it has more data members.
MORE_MEMBERS = {
    "ActorState": "one actor: its life, weights and switches, which could be structs of their own",
    "DistQueue": "a table and its indexes, derived from it",
}
# Values that are recorded or configured: one member per field of their format.
RECORDS = {
    "orchestrator/scheduler/state/" + name + ".hpp"
    for name in ("commands", "config", "events", "facts", "settings", "setting_change")
}
MEASURED = re.compile(r"orchestrator/scheduler/.*\.[ch]pp|orchestrator/run/.*_driver\.hpp")


def sources(root, extensions):
    return sorted(
        path
        for folder in FOLDERS
        for extension in extensions
        for path in (root / folder).rglob("*." + extension)
    )


def without_comments(text):
    """Comments, literals and preprocessor lines become blanks of the same number of lines."""
    pattern = r'//[^\n]*|/\*.*?\*/|R"\((.*?)\)"|"(?:\\.|[^"\\\n])*"|^[ \t]*#[^\n]*'
    blank = lambda m: "\n" * m.group(0).count("\n") + ('""' if m.group(0)[0] in '"R' else "")
    return re.sub(pattern, blank, text, flags=re.S | re.M)


# --- 1. Classes and the files that define them

# At the start of a line: a return type, the qualified name of a member, "(".
DEFINITION = re.compile(
    r"^(?!\s)(?:[\w:<>,&*\[\]][\w:<>,&*\[\] ]*[ &*])?((?:\w+::)+)(?:~?\w+|operator\W+)\(", re.M
)


def files_by_class(root):
    files = collections.defaultdict(set)
    for path in sources(root, ["cpp"]):
        for match in DEFINITION.finditer(without_comments(path.read_text())):
            # Namespaces are in lower case; a nested class counts as the one around it.
            names = [n for n in match.group(1).split("::") if n[:1].isupper()]
            if names:
                files[names[0]].add(str(path.relative_to(root)))
    return files


# --- 2. Data members

CLASS = re.compile(r"\b(?:class|struct)\s+(?:\[\[\w+\]\]\s*)?(\w+)(?:\s+final)?\s*(?::[^;{]*)?\{")


def end_of_block(text, start):
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise ValueError("a block without an end")


def without_templates(text):
    before = None
    while before != text:
        before, text = text, re.sub(r"<[^<>(){};]*(?:\([^()]*\))?[^<>(){};]*>", "", text)
    return text


def without_access(statement):
    return re.sub(r"\b(?:public|private|protected)\s*:", "", statement).strip()


def declared(statement):
    """The number of data members that a statement of a class declares."""
    statement = without_templates(without_access(statement))
    name = re.split(r"[={]", statement, maxsplit=1)[0]
    not_data = r"(using|friend|static|typedef|template|enum|class|struct|union)\b|.*\boperator\b"
    if len(name.split()) < 2 or "(" in name or re.match(not_data, name, re.S):
        return 0
    return 1 + re.sub(r"\{[^}]*\}|\([^)]*\)", "", statement).count(",")


def members(body):
    """The number of data members of a class, without those of the classes in it."""
    count, statement, parentheses, i = 0, "", 0, 0
    while i < len(body):
        c = body[i]
        parentheses += {"(": 1, ")": -1}.get(c, 0)
        if c == "{":
            i = end_of_block(body, i)
            head = without_templates(without_access(statement))
            is_type = re.match(r"(class|struct|enum|union)\b", head)
            is_function = "(" in head.split("=")[0] and not is_type
            statement = "" if is_function and parentheses == 0 else statement + "{}"
        elif c == ";" and parentheses == 0:
            count += declared(statement)
            statement = ""
        else:
            statement += c
        i += 1
    return count


def members_by_class(root):
    found = {}
    for path in sources(root, ["hpp", "cpp"]):
        name = str(path.relative_to(root))
        if not MEASURED.fullmatch(name) or name in RECORDS:
            continue
        text = without_comments(path.read_text())
        for match in CLASS.finditer(text):
            if re.search(r"\benum\s+$", text[: match.start()]):
                continue
            body = text[match.end() : end_of_block(text, match.end() - 1)]
            found[match.group(1)] = max(members(body), found.get(match.group(1), 0))
    return found


# --- 3. Includes of the configuration


class Includes:
    def __init__(self, root):
        self.direct = {
            str(path.relative_to(root)): re.findall(
                r'^#include "([^"]+)"', path.read_text(), re.M
            )
            for path in sources(root, ["cpp", "hpp"])
        }

    def reached(self, file, without=None):
        """All that a file includes; `without`: a header whose own includes do not count."""
        seen, open_files = set(), [file]
        while open_files:
            at = open_files.pop()
            if at in seen:
                continue
            seen.add(at)
            if at != without:
                open_files += self.direct.get(at, [])
        return seen

    def including(self, header, without=None):
        return [
            file
            for file in self.direct
            if file.endswith(".cpp") and header in self.reached(file, without)
        ]


def print_carriers(includes):
    all_files = includes.including(CONFIG)
    rows = []
    for header in includes.direct:
        if header.endswith(".hpp") and header != CONFIG and CONFIG in includes.reached(header):
            lost = len(all_files) - len(includes.including(CONFIG, without=header))
            rows.append((lost, len(includes.including(header)), header))
    print("would lose it  reached  header")
    for lost, reached, header in sorted(rows, reverse=True):
        print(f"{lost:13d}  {reached:7d}  {header}")


# --- The rules


def check(counts, most, exceptions, what):
    broken = [
        f"{name}: {count} {what}, more than {most}"
        for name, count in sorted(counts.items())
        if count > most and name not in exceptions
    ]
    broken += [
        f"{name}: is an exception, and needs none: {counts.get(name, 0)} {what}"
        for name in exceptions
        if counts.get(name, 0) <= most
    ]
    return broken


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).parents[2])
    parser.add_argument("--carriers", action="store_true", help="print what brings it in")
    arguments = parser.parse_args()
    root = pathlib.Path(arguments.root)

    files = {name: len(paths) for name, paths in files_by_class(root).items()}
    data = members_by_class(root)
    includes = Includes(root)
    including = {header: len(includes.including(header)) for header in (CONFIG, SCHEDULER)}

    broken = check(files, MOST_FILES, MORE_FILES, "files define it")
    broken += check(data, MOST_MEMBERS, MORE_MEMBERS, "data members")
    for header, allowed in ((CONFIG, MOST_INCLUDING), (SCHEDULER, MOST_BESIDE)):
        broken += check({header: including[header]}, allowed, {}, ".cpp files include it")
    for name in ("Scheduler", "RunState", "LiveDriver", "VirtualDriver"):
        print(f"{name}: {data.get(name, 0)} data members in {files.get(name, 0)} .cpp files")
    most = max(count for name, count in files.items() if name not in MORE_FILES)
    print(f"{len(files)} classes; at most {most} .cpp files each, exceptions apart")
    for header, count in including.items():
        print(f"{count} .cpp files include {header}")
    if arguments.carriers:
        print_carriers(includes)
    for sentence in broken:
        print("broken:", sentence)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
