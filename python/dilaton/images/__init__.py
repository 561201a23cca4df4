"""The store of images: what they are called, where they are kept, and how their layers become one tree."""
