"""Tags for a site's own templates."""
