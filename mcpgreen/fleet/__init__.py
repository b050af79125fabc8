"""A fleet: tools of one project on many machines. What servers and workers share: the ledger, labels and the bell."""
