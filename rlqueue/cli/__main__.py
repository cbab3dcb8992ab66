"""``python -m rlqueue.cli``."""

import sys

from rlqueue.cli import main

sys.exit(main())
