#!/bin/sh
# Certificates for a cluster of your own: an authority, and one certificate for all of its members.
#
#     sh certificates.sh FOLDER
#
# Whoever has cert.pem and key.pem can run code on the cluster. ca-key.pem is needed only to sign
# more certificates: keep it elsewhere.
set -eu
folder=${1:?name a folder}
umask 077
mkdir -p "$folder"
cd "$folder"
openssl req -x509 -nodes -newkey rsa:3072 -days 365 -subj "/CN=themis authority" \
    -keyout ca-key.pem -out ca.pem
openssl req -nodes -newkey rsa:3072 -subj "/CN=themis cluster" -keyout key.pem -out request.pem
openssl x509 -req -days 365 -in request.pem -CA ca.pem -CAkey ca-key.pem -CAcreateserial \
    -out cert.pem
rm request.pem
echo "wrote ca.pem, ca-key.pem, cert.pem and key.pem to $folder"
