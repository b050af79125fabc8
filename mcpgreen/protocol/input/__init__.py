"""What a server may ask of a client: elicitation, sampling and roots, in requests or in results."""
