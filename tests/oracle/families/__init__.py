"""Every family, by name."""
from . import basics, dense, language, structured, vision

FAMILIES = {}
for module in (basics, vision, dense, language, structured):
    for name, family in module.TABLE.items():
        assert name not in FAMILIES, name
        FAMILIES[name] = family
        if family.commit is None:  # `new` loses batch-norm
            first = ("raw", "old") if module in (basics, vision, dense) else ("new", "old", "raw")
            family.commit = () if family.large else tuple(w for w in first if w not in family.cannot)[:2]
