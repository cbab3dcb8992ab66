"""How far a long command is, where a person looks at it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(total: int, unit: str) -> Iterator[Callable[..., None]]:
    """A progress bar on stderr: ``tell(done, what, total)``."""
    from tqdm import tqdm

    with tqdm(total=total, unit=unit, disable=None, file=sys.stderr, leave=False) as shown:

        def tell(done: int, what: str = "", of: int | None = None) -> None:
            shown.total = of or shown.total
            shown.set_description_str(what, refresh=False)
            shown.update(done - shown.n)

        yield tell
