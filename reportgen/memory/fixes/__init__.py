"""Ways to make a program fit, each with the bytes that it saves and how that was worked out."""
