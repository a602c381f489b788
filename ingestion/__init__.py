"""From sitemaps to a published index: sitemap, fetch, convert, split, embed, run."""
