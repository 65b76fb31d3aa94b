# needrestart restarts what uses replaced libraries after each installation of packages, unasked, as on Ubuntu 24.04
packages needrestart
mkdir -p /etc/needrestart/conf.d
printf '$nrconf{restart} = q(a);\n' > /etc/needrestart/conf.d/lab.conf
