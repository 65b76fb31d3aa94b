"""Pure parsers of what tools print: text in, plain values out, nothing raised for odd input but ParseError."""
