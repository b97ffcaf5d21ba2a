"""The studies of the project, in the order of the atlas. Each is a package with a `STUDY`."""

STUDIES = ("benign_overfitting",)
SKELETON = "toy"  # what `proving new` copies; known by name, not listed
