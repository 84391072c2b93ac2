"""Small charts as SVG text for the interactive page: drawn in milliseconds, a name under every mark.

`rooflines.output.figures` draws what is printed, and takes a second for what a slider redraws at once.
"""
