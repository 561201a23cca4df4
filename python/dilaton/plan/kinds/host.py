"""`host`: an end system."""

from __future__ import annotations

from dilaton.plan.kinds.recipe import Parts, Recipe

RECIPE = Recipe(forwards=lambda interfaces: False, make=lambda site: Parts())
