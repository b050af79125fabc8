#!/bin/sh
echo "The arguments are valid."
