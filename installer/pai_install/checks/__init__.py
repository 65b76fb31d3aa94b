"""One kind of check: its declaration, its verdict, the law of evidence, and every form of its report."""
