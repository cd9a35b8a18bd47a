"""Custom resources of other projects, with their unmodified controllers."""
