#!/usr/bin/python3
"""The pictures that docs/pictures/draw.py draws are legible: on any background, without clipping, and without
overlapping text.

usage: pictures_test.py FOLDER [UNITTEST ARGUMENTS]
"""
import itertools
import pathlib
import sys
import unittest
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"
# For a letter of a sans-serif font, in font sizes; wider than most.
LETTER_WIDTH = 0.6


def luminance(colour):
    """The luminance, as WCAG 2 defines it, of "#rrggbb"."""
    channels = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * channel for weight, channel in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def text_box(node):
    """Left, top, right, bottom."""
    size, width = float(node.get("font-size")), 0.0
    width = len(node.text) * size * LETTER_WIDTH * (1.08 if node.get("font-weight") == "bold" else 1)
    x, y = float(node.get("x")), float(node.get("y"))
    left = {"start": x, "middle": x - width / 2, "end": x - width}[node.get("text-anchor")]
    return left, y - 0.75 * size, left + width, y + 0.2 * size


def overlap(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def rect_box(node):
    x, y = float(node.get("x", 0)), float(node.get("y", 0))
    return x, y, x + float(node.get("width")), y + float(node.get("height"))


def problems(svg):
    root = ElementTree.fromstring(svg)
    width, height = float(root.get("width")), float(root.get("height"))
    texts = [(node, text_box(node)) for node in root.iter(f"{SVG}text")]
    rects = [(node, rect_box(node)) for node in root.iter(f"{SVG}rect")]
    found = [] if texts else ["no text: nothing would be checked"]
    if not rects or rects[0][1] != (0, 0, width, height):
        found.append("no background of its own under all of the picture")
    for node, box in texts:
        if box[0] < 0 or box[1] < 0 or box[2] > width or box[3] > height:
            found.append(f"'{node.text}' leaves the picture")
        for rect, place in rects:
            if overlap(box, place) and contrast(node.get("fill"), rect.get("fill")) < 4.5:
                found.append(f"'{node.text}' cannot be read on {rect.get('fill')}")
    for (one, box), (other, place) in itertools.combinations(texts, 2):
        if overlap(box, place):
            found.append(f"'{one.text}' and '{other.text}' overlap")
    return found


class PicturesTest(unittest.TestCase):
    def test_all_can_be_read(self):
        names = ("layouts", "masks", "pages", "split_keys")
        for name in names:
            with self.subTest(name):
                self.assertEqual(problems((FOLDER / f"{name}.svg").read_text(encoding="utf-8")), [])

    def test_unreadable_text_is_found(self):
        ground = '<rect width="100" height="50" fill="#ffffff"/>'
        text = '<text x="10" y="20" text-anchor="start" font-size="12" fill="{}">word</text>'

        def found(content):
            return "".join(problems(f'<svg xmlns="http://www.w3.org/2000/svg" width="100" height="50">{content}</svg>'))

        dark = text.format("#1c1c1c")
        self.assertEqual(found(ground + dark), "")
        self.assertIn("no background", found(dark))
        self.assertIn("cannot be read on #ffffff", found(ground + text.format("#bbbbbb")))
        self.assertIn("overlap", found(ground + dark + dark.replace("word", "other")))
        self.assertIn("leaves the picture", found(ground + dark.replace("word", "word " * 9)))
        self.assertIn("nothing would be checked", found(ground))


if __name__ == "__main__":
    FOLDER = pathlib.Path(sys.argv.pop(1))
    unittest.main()
