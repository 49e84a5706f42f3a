"""A rank of a trainer other than rank 0, which starts it."""

import sys

from .ranks import main

sys.exit(main())
