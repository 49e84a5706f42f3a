"""A rank of a trainer that is not the first; the first starts it."""

import sys

from .ranks import main

sys.exit(main())
