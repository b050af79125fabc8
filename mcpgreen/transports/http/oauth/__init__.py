"""OAuth 2.1: verify access tokens that an authorization server has signed. Needs the extra `oauth`."""
