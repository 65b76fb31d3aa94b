# package sources that ended long ago: one whose server is gone, one whose key is not to be had
cat > /etc/apt/sources.list.d/cuda-old.list <<'END'
deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] https://developer.download.invalid/compute/cuda/repos /
END
