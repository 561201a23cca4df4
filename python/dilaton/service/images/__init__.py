"""The store of images: what is brought into it, what is built for it, and what goes out."""
