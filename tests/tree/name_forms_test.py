#!/usr/bin/python3
"""name_forms.py must find each name of the form where it is code, and no other word."""
import unittest

import name_forms

TEXT = r"""// ofComment
template <typename OfKind> int ofLane(OfKind of);
/* of_block
   ofBlock */
enum { of_keys, also_of_keys, offset, Of };
const char *text = "of_text \" ofText", quote = '"';
auto raw = R"x(ofRaw
" of_raw)" of_raw)x";
int n = of . ofMember + rowOf(of) + 1'000; // '"'
int last = values[of_last];
"""


class NameFormsTest(unittest.TestCase):
    def test_names(self):
        self.assertEqual(name_forms.names_of(TEXT), [(2, "OfKind"), (2, "ofLane"), (2, "OfKind"), (5, "of_keys"), (9, "ofMember"),
                                                     (10, "of_last")])


if __name__ == "__main__":
    unittest.main()
