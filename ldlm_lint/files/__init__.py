"""Files and their bytes: what is changed on the disk, and what edits make of a text. It knows no rule and no kind of code."""
