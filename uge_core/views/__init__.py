"""What each page shows, one file a page: stored audits as tables, choices and sentences. Nothing is measured here."""
