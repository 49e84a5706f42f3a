#!/usr/bin/env python3
"""A picture of what a command shows in a terminal: an SVG of one frame of its live view.

    docs/terminal_svg.py docs/images/run.svg --at 540 -- temper run configs/quickstart.yaml

The command runs on a terminal of its own, of --columns and --rows. The frame that is drawn is the first
that says `N/M updates` with N of at least --at, or the last one of the command. Exit 1 where no frame
did, or the command failed. `docs/figures.py --check` holds docs/images/run.svg to the configuration that it shows.
"""
import argparse
import fcntl
import html
import os
import pty
import re
import struct
import sys
import termios

WIDTH, HEIGHT, SIZE, MARGIN = 8.43, 18, 14, 12  # a cell, its letters, and around the frame, in pixels
BACKGROUND, FOREGROUND = "#16181d", "#d0d0d0"
ESCAPE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\r|\n|[^\x1b\r\n]")


class Screen:
    """What a terminal shows after the sequences that Temper's view writes."""

    def __init__(self):
        self.lines, self.row, self.column, self.style = [{}], 0, 0, ()
        self.top = 0  # where the view began to draw; above is what was said before

    def write(self, text):
        for match in ESCAPE.finditer(text):
            if match[2]:
                self.control(match[1], match[2])
            elif match[0] == "\r":
                self.column = 0
            elif match[0] == "\n":
                self.row, self.column = self.row + 1, 0
                if self.row == len(self.lines):
                    self.lines.append({})
            else:
                self.lines[self.row][self.column] = (match[0], self.style)
                self.column += 1

    def control(self, words, what):
        if what == "A":
            self.row = self.top = max(0, self.row - int(words or 1))
        elif what == "H":
            self.row = self.column = self.top = 0
        elif what in "JK":
            line = self.lines[self.row]
            self.lines[self.row] = {at: cell for at, cell in line.items() if at < self.column}
            if what == "J":
                del self.lines[self.row + 1:]
        elif what == "m":
            self.paint([int(word or 0) for word in words.split(";")])

    def paint(self, codes):
        style = dict(self.style)
        while codes:
            code = codes.pop(0)
            if code == 0:
                style = {}
            elif code == 1:
                style["bold"] = True
            elif code in (38, 48) and codes[:1] == [5]:
                style["fill" if code == 38 else "behind"] = colour(codes[1])
                del codes[:2]
        self.style = tuple(sorted(style.items()))

    def text(self):
        return "\n".join("".join(line.get(at, " ")[0] for at in range(max(line, default=-1) + 1))
                         for line in self.lines)


def colour(code):
    """Of xterm's 256."""
    if code < 16:
        return ("#000000 #cd0000 #00cd00 #cdcd00 #0000ee #cd00cd #00cdcd #e5e5e5 "
                "#7f7f7f #ff0000 #00ff00 #ffff00 #5c5cff #ff00ff #00ffff #ffffff").split()[code]
    if code >= 232:
        return "#" + f"{8 + 10 * (code - 232):02x}" * 3
    parts = ((code - 16) // 36, (code - 16) // 6 % 6, (code - 16) % 6)
    return "#" + "".join(f"{55 + 40 * part if part else 0:02x}" for part in parts)


def svg(lines, columns, title):
    """The lines of a screen; runs of cells with one style are one text each."""
    while lines and not lines[-1]:
        lines = lines[:-1]
    width, height = columns * WIDTH + 2 * MARGIN, len(lines) * HEIGHT + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
           f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{SIZE}">',
           f"<title>{html.escape(title)}</title>",
           f'<rect width="100%" height="100%" rx="6" fill="{BACKGROUND}"/>']
    for row, line in enumerate(lines):
        top = MARGIN + row * HEIGHT
        at = 0
        while at <= max(line, default=-1):
            style = line.get(at, (" ", ()))[1]
            end = at + 1
            while end in line and line[end][1] == style:
                end += 1
            letters = "".join(line.get(i, (" ", ()))[0] for i in range(at, end))
            x, length, style = MARGIN + at * WIDTH, (end - at) * WIDTH, dict(style)
            if "behind" in style:
                out.append(f'<rect x="{x:.1f}" y="{top}" width="{length:.1f}" height="{HEIGHT}" '
                           f'fill="{style["behind"]}"/>')
            if letters.strip():
                bold = ' font-weight="bold"' if "bold" in style else ""
                out.append(f'<text x="{x:.1f}" y="{top + 13.5}" fill="{style.get("fill", FOREGROUND)}"{bold} '
                           f'textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs" '
                           f'xml:space="preserve">{html.escape(letters)}</text>')
            at = end
    return "\n".join(out + ["</svg>", ""])


def frames(command, columns, rows):
    """Runs it; its screen after each piece of output, then its exit status."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.environ.pop("NO_COLOR", None)
        os.environ["TERM"] = "xterm-256color"
        os.execvp(command[0], command)
    screen, rest = Screen(), b""
    while True:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # the command closed its side
            piece = b""
        if not piece:
            break
        # A frame ends with the clearing of what is below it.
        whole, mark, rest = (rest + piece).rpartition(b"\x1b[J")
        if mark:
            screen.write((whole + mark).decode(errors="replace"))
            yield screen, None
    screen.write(rest.decode(errors="replace"))
    yield screen, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def wrong_picture(picture, config):
    """Why the picture of a run is not of this configuration as it ships; no reason if it is."""
    with open(picture, encoding="utf-8") as file:
        shown = re.search(r"\d+/(\d+) updates", file.read())
    with open(config, encoding="utf-8") as file:
        steps = re.search(r"^steps: (\d+)", file.read(), re.MULTILINE)
    if shown and steps and shown[1] == steps[1]:
        return []
    return [f"{picture} shows a run of {shown[1] if shown else 'unknown'} updates, {config} has {steps[1] if steps else 'none'}; "
            "docs/terminal_svg.py makes it anew"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--at", type=int, default=0)
    parser.add_argument("--columns", type=int, default=104)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    picture = status = None
    for screen, status in frames(options.command, options.columns, options.rows):
        said = re.search(r"(\d+)/\d+ updates", screen.text())
        if picture is None and said and int(said[1]) >= options.at > 0:
            picture = svg(screen.lines[screen.top:], options.columns, " ".join(options.command))
    if options.at == 0:
        picture = svg(screen.lines[screen.top:], options.columns, " ".join(options.command))
    if picture:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(picture)
    else:
        print("no frame of that many updates; at the end there was\n" + screen.text(), file=sys.stderr)
    return 0 if picture and status == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
