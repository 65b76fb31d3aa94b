from typing import Any

context: Any
