"""OAuth 2.1: let in callers with access tokens that an authorization server has signed. Needs the extra `oauth`."""
