"""What a server may ask of a client: elicitation, sampling and roots, by requests or in results."""
