"""Every family, by name."""
from . import basics, dense, language, structured, vision

FAMILIES = {}
for module in (basics, vision, dense, language, structured):
    for name, family in module.TABLE.items():
        assert name not in FAMILIES, name
        FAMILIES[name] = family
