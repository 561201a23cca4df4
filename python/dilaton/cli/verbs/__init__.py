"""The command line's words: arguments, options and help of each verb.

What a verb does is in `dilaton.cli`, and is imported when it is used, so that `--help` is there at once.
"""
