"""Pure parsers of tool outputs: text in, plain values out. They raise only ParseError."""
