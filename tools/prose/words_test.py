"""Tests of the count of words and of the anchors of pages."""
import unittest

import words

PAGE = """# A `b` & c: [d](x.md)

two words
<!-- printed: roles -->
| three | words |
<!-- end of roles -->
<a id="old"></a>
```text
# no title
```
## Z
## Z
<!-- use: begin -->
one
<!-- use: end -->
"""


class Words(unittest.TestCase):
    def test_count(self):
        """Prose and printed blocks are apart; marks are no words; tables and code are."""
        self.assertEqual(words.count(PAGE), [6 + 2 + 2 + 1 + 3 + 1 + 2 + 2, 5 + 1])

    def test_anchors(self):
        """Headings have the anchors of GitHub; a line of code has none."""
        self.assertEqual(words.anchors(PAGE), ["a-b--c-d", "old", "z", "z-1"])

    def test_pages(self):
        """A revision has the pages of the work tree, folders below docs included."""
        self.assertIn("docs/operators/README.md", words.page_names())
        self.assertIn("docs/operators/README.md", words.page_names("HEAD"))


if __name__ == "__main__":
    unittest.main()
