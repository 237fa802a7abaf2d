#!/usr/bin/python3
"""Draws the pictures of README.md and docs/concepts/structs.md.

usage: draw.py [--check] FOLDER     writes them, or fails unless they are there as they would be written
       draw.py --masks              prints the masks of the picture, cell by cell

The pictures are computed: places from strides, pages from tables, masks from the formula of sluice_mask.
"""
import pathlib
import sys
from xml.sax.saxutils import escape

COLOURS = ["#cfe3f7", "#fbdcb8", "#d4efd0", "#ead4f0"]  # light: text on them is dark
DARK, GREY, LINE = "#1c1c1c", "#5a5a5a", "#8a8a8a"


class Picture:
    """On ground of its own, so that it reads the same on a light and on a dark page."""

    def __init__(self, width, height, title):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                      f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
                      f"<title>{escape(title)}</title>",
                      f'<rect width="{width}" height="{height}" fill="#ffffff"/>']

    def text(self, x, y, text, anchor="start", size=12, colour=DARK, weight="normal", family=None):
        family = f' font-family="{family}"' if family else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" fill="{colour}" '
                          f'font-weight="{weight}"{family}>{escape(text)}</text>')

    def box(self, x, y, width, height, fill="#ffffff", line=LINE):
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}" '
                          f'stroke="{line}"/>')

    def line(self, x1, y1, x2, y2, colour=LINE, arrow=False):
        self.parts.append(f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="{colour}" fill="none"/>')
        if arrow:
            self.parts.append(f'<circle cx="{x2:g}" cy="{y2:g}" r="2.5" fill="{colour}"/>')

    def span(self, x1, x2, y, text):
        """A stride: from one place to another."""
        for x in (x1, x2):
            self.line(x, y - 4, x, y + 4, GREY)
        self.line(x1, y, x2, y, GREY)
        self.text(x2 + 6, y + 4, text, colour=GREY, size=11)

    def done(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


# ------------------------------------------------------------------------------------------------ layouts

BATCH, TOKENS, HEADS, DIM = 2, 3, 2, 8


def layouts():
    """Each box is one row of a head: DIM elements. Its place follows only from the strides."""
    dense = [(b, t, h) for b in range(BATCH) for t in range(TOKENS) for h in range(HEADS)]
    packed = [(0, t, h) for t in range(BATCH * TOKENS) for h in range(HEADS)]
    rows = [("BSHD", (TOKENS * HEADS * DIM, HEADS * DIM, DIM, 1), dense, "[batch, token, head, dim]"),
            ("BHSD", (HEADS * TOKENS * DIM, DIM, TOKENS * DIM, 1), dense, "[batch, head, token, dim]"),
            ("packed", (0, HEADS * DIM, DIM, 1), packed, "[token, head, dim], q_starts = {0, 4, 6}")]
    picture = Picture(860, 430, "Places of the rows of a tensor in memory")
    left, width = 30, 56
    for number, (name, stride, cells, order) in enumerate(rows):
        y = 30 + 135 * number
        picture.text(left, y, name, weight="bold", size=14)
        picture.text(left + 70, y, f"memory order {order}; stride = {{{', '.join(map(str, stride))}}}", colour=GREY)
        for b, t, h in cells:
            place = (b * stride[0] + t * stride[1] + h * stride[2]) // DIM
            sequence = b if name != "packed" else int(t >= 4)
            x = left + width * place
            picture.box(x, y + 12, width, 40, COLOURS[sequence * 2 + h])
            picture.text(x + width / 2, y + 29, f"token {t if name != 'packed' else t - 4 * sequence}", "middle", 11)
            picture.text(x + width / 2, y + 44, f"head {h}", "middle", 11)
        for index, label in ((1, "token"), (2, "head"), (0, "sequence")):
            if stride[index]:
                depth = {1: 66, 2: 82, 0: 98}[index]
                picture.span(left, left + width * stride[index] // DIM, y + depth,
                             f"stride[{index}], to the next {label}: {stride[index]} elements")
    picture.text(left, 424, "blue and orange: heads 0 and 1 of sequence 0; green and violet: of sequence 1", colour=GREY)
    return picture.done()


# -------------------------------------------------------------------------------------------------- pages

TABLES = [[7, 2], [5], [9, 0, 3, 11]]
LENGTHS = [21, 1, 51]
PAGES, PAGE_SIZE, TABLE_WIDTH = 12, 16, 4


def pages():
    picture = Picture(860, 520, "Page tables and pages")
    picture.text(30, 30, "BLOCK", weight="bold", size=14)
    picture.text(30, 46, "page_table, page_table_stride = 4", colour=GREY, size=11)
    for b, table in enumerate(TABLES):
        picture.text(30, 74 + 30 * b, f"sequence {b}")
        for n in range(TABLE_WIDTH):
            used = n < len(table)
            picture.box(105 + 40 * n, 56 + 30 * b, 40, 26, COLOURS[b] if used else "#ffffff")
            picture.text(125 + 40 * n, 74 + 30 * b, str(table[n]) if used else "any", "middle",
                         colour=DARK if used else GREY)
        picture.text(280, 74 + 30 * b, f"kv_lengths[{b}] = {LENGTHS[b]}", colour=GREY, size=11)
    picture.text(420, 30, "CSR", weight="bold", size=14)
    picture.text(420, 46, "page_table in a row; page_starts: where sequences begin in it",
                 colour=GREY, size=11)
    starts, place = [0], 0
    for b, table in enumerate(TABLES):
        for page in table:
            picture.box(420 + 40 * place, 56, 40, 26, COLOURS[b])
            picture.text(440 + 40 * place, 74, str(page), "middle")
            place += 1
        starts.append(place)
    for b, start in enumerate(starts):
        picture.line(420 + 40 * start, 104, 420 + 40 * start, 86, GREY, arrow=True)
        picture.text(420 + 40 * start, 118, str(start), "middle", colour=GREY)
    picture.text(420, 136, f"page_starts = {{{', '.join(map(str, starts))}}}", colour=GREY, size=11)

    picture.text(30, 186, "The pool", weight="bold", size=14)
    picture.text(110, 186, "k.stride[0] elements from one page to the next; rows that hold a key are filled; below: "
                 "sequence, keys", colour=GREY, size=11)
    owner = {page: (b, n) for b, table in enumerate(TABLES) for n, page in enumerate(table)}
    for page in range(PAGES):
        x = 30 + 66 * page
        for row in range(PAGE_SIZE):
            fill = "#ffffff"
            if page in owner:
                b, n = owner[page]
                fill = COLOURS[b] if n * PAGE_SIZE + row < LENGTHS[b] else "#ffffff"
            picture.box(x, 200 + 6 * row, 56, 6, fill, "#c8c8c8")
        picture.text(x + 28, 312, f"page {page}", "middle", 11)
        if page in owner:
            b, n = owner[page]
            last = min((n + 1) * PAGE_SIZE, LENGTHS[b]) - 1
            picture.text(x + 28, 326, f"{b}: {n * PAGE_SIZE}..{last}", "middle", 10, GREY)

    picture.text(30, 362, "Inside a page", weight="bold", size=14)
    picture.text(150, 362, "2 heads, 4 rows, 16 elements of a row, x = 8 (k_pack); a box is 8 elements", colour=GREY,
                 size=11)
    heads, rows, dim, pack = 2, 4, 16, 8
    orders = [("NHD", (heads * dim, dim, pack)), ("HND", (dim, rows * dim, pack)),
              ("x-packed", (pack, rows * dim, rows * pack))]  # of row, head, chunk
    for number, (name, stride) in enumerate(orders):
        y = 378 + 42 * number
        picture.text(30, y + 20, name)
        for row in range(rows):
            for head in range(heads):
                for chunk in range(dim // pack):
                    place = (row * stride[0] + head * stride[1] + chunk * stride[2]) // pack
                    x = 100 + 46 * place
                    picture.box(x, y, 46, 34, COLOURS[head * 2 + chunk])
                    picture.text(x + 23, y + 14, f"row {row}", "middle", 10)
                    picture.text(x + 23, y + 27, f"e {chunk * pack}..{chunk * pack + pack - 1}", "middle", 10)
    picture.text(30, 512, "blue and orange: elements 0..7 and 8..15 of head 0; green and violet: of head 1", colour=GREY,
                 size=11)
    return picture.done()


# -------------------------------------------------------------------------------------------------- masks

# name, rows, keys, causal, top_left, window_left, window_right (-1: without its flag), sink_tokens
MASKS = [
    ("causal, bottom-right", 4, 7, 1, 0, -1, -1, 0),
    ("causal, top-left", 4, 7, 1, 1, -1, -1, 0),
    ("more rows than keys", 6, 4, 1, 0, -1, -1, 0),
    ("one new token", 1, 7, 1, 0, -1, -1, 0),
    ("causal, window_left 2", 4, 8, 1, 0, 2, -1, 0),
    ("and sink_tokens 2", 4, 8, 1, 0, 2, -1, 2),
    ("window: left 1, right 2", 5, 8, 0, 0, 1, 2, 0),
    ("the same, top-left", 5, 8, 0, 1, 1, 2, 0),
]


def is_visible(i, j, rows, keys, causal, top_left, left, right, sinks):
    """The header's rule, word by word."""
    shift = 0 if top_left else keys - rows
    d = j - i - shift
    if causal and not d <= 0:
        return False
    if right >= 0 and not d <= right:
        return False
    if left >= 0 and not (d >= -left or j < sinks):
        return False
    return 0 <= j < keys


def cells_of(mask):
    return [[is_visible(i, j, *mask[1:]) for j in range(mask[2])] for i in range(mask[1])]


def masks():
    picture = Picture(860, 330, "Masks")
    for number, mask in enumerate(MASKS):
        left, top = 30 + 210 * (number % 4), 30 + 150 * (number // 4)
        picture.text(left, top, mask[0], weight="bold")
        shift = 0 if mask[4] else mask[2] - mask[1]
        for i, row in enumerate(cells_of(mask)):
            for j, visible in enumerate(row):
                picture.box(left + 18 * j, top + 10 + 18 * i, 18, 18, COLOURS[0] if visible else "#ffffff")
                if j == i + shift:
                    picture.text(left + 18 * j + 9, top + 23 + 18 * i, "d", "middle", 10, GREY)
    picture.text(30, 322, "rows are queries i, columns are keys j; blue is visible; d marks the diagonal j = i + shift",
                 colour=GREY, size=11)
    return picture.done()


# -------------------------------------------------------------------------------------------------- split

def split_keys():
    picture = Picture(860, 300, "Keys of a row divided among workgroups, and the merge")
    left, width, splits, tiles = 60, 720, 3, 9
    picture.text(left, 26, "One new token, its keys in 3 splits of 3 tiles", weight="bold")
    for tile in range(tiles):
        split = tile * splits // tiles
        picture.box(left + width / tiles * tile, 38, width / tiles, 34, COLOURS[split])
        picture.text(left + width / tiles * (tile + 0.5), 60, f"tile {tile}", "middle", 11)
    for split in range(splits):
        middle = left + width / splits * (split + 0.5)
        picture.line(middle, 74, middle, 96, GREY, arrow=True)
        picture.box(middle - 105, 100, 210, 50, COLOURS[split])
        picture.text(middle, 120, f"workgroup {split}", "middle")
        picture.text(middle, 139, f"O[{split}], LSE[{split}] of its keys only, F32", "middle", 11)
        picture.line(middle, 152, left + width / 2 + (split - 1) * 60, 196, GREY, arrow=True)
    picture.text(left, 178, "workspace", colour=GREY, size=11)
    picture.box(left + 110, 200, 500, 66, COLOURS[3])
    picture.text(left + width / 2, 222, "merge", "middle", weight="bold")
    picture.text(left + width / 2, 240, "LSE = ln(exp LSE[0] + exp LSE[1] + exp LSE[2] + exp sink)", "middle", 11)
    picture.text(left + width / 2, 257, "O = sum over splits of exp(LSE[s] - LSE) * O[s], rounded once", "middle", 11)
    picture.text(left, 290, "sluice_attention_merge does only the last step, for results that the caller has", colour=GREY,
                 size=11)
    return picture.done()


# ------------------------------------------------------------------------------------------- architecture

def architecture():
    picture = Picture(720, 300, "How kernels get into the library, and how a call reaches the device")

    def box(x, y, width, height, lines, fill):
        picture.box(x, y, width, height, fill)
        for i, line in enumerate(lines):
            picture.text(x + width / 2, y + height / 2 + 4 + 15 * (i - (len(lines) - 1) / 2), line, "middle",
                         weight="normal" if i else "bold")

    picture.text(20, 24, "build time", colour=GREY)
    for i, lines in enumerate((("variant table", "kernels/attention"), ("sluice dialect", "and its passes"),
                               ("MLIR, LLVM, lld", "gfx942 machine code"), ("kernel pack", "one file"))):
        box(20 + 172 * i, 36, 150, 50, lines, COLOURS[1])
        if i < 3:
            picture.line(172 + 172 * i, 61, 190 + 172 * i, 61, GREY, arrow=True)
    picture.line(611, 88, 611, 106, GREY)
    picture.line(611, 106, 360, 106, GREY)
    picture.line(360, 106, 360, 128, GREY, arrow=True)
    picture.text(20, 124, "run time", colour=GREY)
    box(20, 136, 150, 50, ("your engine", "C, C++, Rust, Go, Python"), COLOURS[2])
    picture.line(172, 161, 198, 161, GREY, arrow=True)
    box(204, 132, 312, 58, ("libsluice.so", "arguments checked, kernel chosen, one launch enqueued"), COLOURS[0])
    picture.line(280, 192, 190, 226, GREY, arrow=True)
    picture.line(440, 192, 530, 226, GREY, arrow=True)
    box(70, 232, 240, 50, ("HIP runtime of the process", "AMD Instinct GPU"), COLOURS[3])
    box(410, 232, 240, 50, ("libsluice_emulator.so", "the same machine code, on any CPU"), COLOURS[3])
    return picture.done()


PICTURES = {"architecture.svg": architecture, "layouts.svg": layouts, "pages.svg": pages, "masks.svg": masks, "split_keys.svg": split_keys}


def main():
    arguments = sys.argv[1:]
    if arguments == ["--masks"]:
        for mask in MASKS:
            print(" ".join(map(str, mask[1:])) + " " + mask[0])
            for row in cells_of(mask):
                print("".join(str(int(cell)) for cell in row))
        return
    check = arguments[:1] == ["--check"]
    if len(arguments) != 1 + check:
        sys.exit(__doc__)
    folder = pathlib.Path(arguments[-1])
    for name, draw in PICTURES.items():
        if not check:
            (folder / name).write_text(draw(), encoding="utf-8")
        elif not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != draw():
            sys.exit(f"{folder / name} differs from its picture as drawn now; run {sys.argv[0]} {folder}")


if __name__ == "__main__":
    main()
