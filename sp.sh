exec sleep 12
