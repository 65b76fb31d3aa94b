// Calls of OpenPAI's JavaScript SDK, one after the other. Each result is a line of JSON: [name, result or error].
const fs = require('fs');
const yaml = require('js-yaml');
const { PAIV2 } = require('@microsoft/openpai-js-sdk');

const cluster = JSON.parse(process.env.CLUSTER);
const client = new PAIV2.OpenPAIClient(cluster);
const user = cluster.username;
const file = yaml.safeLoad(fs.readFileSync(process.env.JOB, 'utf8'));
const name = process.env.NAME;

async function call(label, action) {
  try {
    const value = await action();
    console.log(JSON.stringify([label, { value: value === undefined ? null : value }]));
    return value;
  } catch (error) {
    const { data, message } = error;
    console.log(JSON.stringify([label, { error: data || String(message) }]));
    return undefined;
  }
}

async function found() {
  for (let left = 60; left > 0; left -= 1) {
    const jobs = await client.job.listJobs({ username: user, keyword: name });
    if (jobs.length) return jobs;
    await new Promise(resolve => setTimeout(resolve, 250));
  }
  throw new Error('the job is not listed');
}

(async () => {
  await call('info', () => client.api.getClusterInfo());
  await call('login', () => client.authn.basicLogin());
  await call('submit', () => client.job.createJob(file));
  await call('list', found);
  await call('again', () => client.job.createJob(file));
  await call('job', () => client.job.getJob(user, name));
  await call('config', () => client.job.getJobConfig(user, name));
  await call('events', () => client.job.listEvents(user, name));
  await call('tag', () => client.job.addTag(user, name, 'sdk'));
  await call('tagged', () => client.job.listJobs({ tagsContain: 'sdk' }));
  await call('untag', () => client.job.deleteTag(user, name, 'sdk'));
  await call('missing', () => client.job.getJob(user, 'no-such-job'));
  await call('stop', () => client.job.updateJobExecutionType(user, name, 'STOP'));
  await call('clusters', () => client.virtualCluster.listVirtualClusters());
  await call('cluster', () => client.virtualCluster.getVirtualCluster('default'));
  await call('user', () => client.user.getUser(user));
  await call('users', () => client.user.getAllUser());
  await call('groups', () => client.group.getAllGroup());
  await call('group', () => client.group.createGroup({ groupname: 'x', description: '', externalName: '', extension: {} }));
  await call('storages', () => client.storage.getStorages());
  await call('storage', () => client.storage.getStorage('data'));
  await call('application', () => client.token.createApplicationToken());
  await call('tokens', () => client.token.getTokens());
  await call('logout', () => client.authn.basicLogout());
})();
