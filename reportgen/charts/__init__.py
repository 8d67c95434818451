"""Charts as pictures: the only part of reportgen that draws. Begin at `picture`."""
