#!/usr/bin/env bash
# A comment.
echo "A text to print" >&2
